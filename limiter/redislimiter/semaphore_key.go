package redislimiter

// Suffixes of a semaphore's key in the names of the sets of its waiters, and of the processes that
// were denied and do not wait.
const (
	waitingSuffix = ":waiting"
	deniedSuffix  = ":denied"
)

func semaphoreKey(namespace, key string) string {
	return string(appendSemaphoreKey(nil, namespace, key))
}

func appendSemaphoreKey(b []byte, namespace, key string) []byte {
	b = append(append(append(b, "hotparam:{"...), namespace...), '/')
	return append(appendHash(b, "semaphore", key), "}:semaphore"...)
}

// semaphoreKeys returns the keys of the scripts that take and look, of the semaphore key.
func semaphoreKeys(key string) []string {
	return []string{key, key + waitingSuffix, key + deniedSuffix}
}
