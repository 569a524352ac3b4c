// Package planstatus shows the progress of an Instance's plans as text, data and trees. It reads the hub.
package planstatus
