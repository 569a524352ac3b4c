// Package planstatus shows the progress of an Instance's plans as text and trees. It reads the hub.
package planstatus
