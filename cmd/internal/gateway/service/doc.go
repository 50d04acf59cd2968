// Package service runs the guard as a process: the doors that section guard of the file opens,
// in front of one Hotparam.
//
//	keys.go          certificates and tokens, read before anything is opened
//	certificates.go  certificates that are renewed
//	doors.go         the doors and their listeners
//	service.go       the order of the start and the end
//	metrics.go       its metrics
//
// The command has the flags, the printing and the server of health. It passes that server to
// [Service.Run].
package service
