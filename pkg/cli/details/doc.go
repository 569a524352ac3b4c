// Package details implements the commands that show details of one Instance or add-on: its history, its parameters and its events. It only reads
// the hub.
package details
