// Package details implements the commands that show details of one Instance or add-on: its history, its parameters, its events and the logs of its
// pods. It only reads the hub and, for logs, the managed cluster.
package details
