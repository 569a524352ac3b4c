// Package planstatus shows how the plans of an Instance go on, as text, as data and as trees. It reads the hub.
package planstatus
