// Package packages implements the commands for operator packages, and reads packages from folders, tarballs, repositories and the hub. Only
// the command push writes to the hub.
package packages
