// Package whatif implements the commands that show what a change would affect: the removal of an add-on, another version of it, and another version of
// Kubernetes. It only reads the hub.
package whatif
