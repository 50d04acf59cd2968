package redislimiter

// waitingSuffix is added to a semaphore's key for who waits.
const waitingSuffix = ":waiting"

func semaphoreKey(namespace, key string) string {
	return redisKey(namespace, hashOf("semaphore", key)) + ":semaphore"
}
