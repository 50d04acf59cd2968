package redislimiter

// waitingSuffix follows a semaphore's key in the name of the set of its waiters.
const waitingSuffix = ":waiting"

func semaphoreKey(namespace, key string) string {
	return redisKey(namespace, hashOf("semaphore", key)) + ":semaphore"
}
