package base

// Notify sends a value on a channel with room for one, unless one is waiting there. The receiver
// then learns that something has happened, but not how often.
func Notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
