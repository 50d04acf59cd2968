// Package service runs the guard as a process: the doors that section guard of the file opens, in
// front of one Hotparam.
//
//	keys.go          certificates and tokens, read before anything is opened
//	certificates.go  certificates that are renewed
//	doors.go         the doors and their listeners
//	service.go       the order in which all of it begins and ends
//	metrics.go       its metrics
//
// The command's part is flags, printing and the server of health: it passes that server
// to [Service.Run].
package service
