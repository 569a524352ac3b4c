// Package packages has the commands for operator packages, and reads packages from folders, tarballs, repositories and the hub. Of the
// commands only push writes to the hub.
package packages
