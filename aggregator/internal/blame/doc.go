// Package blame finds the parameter values that slow a back end down for all others.
package blame
