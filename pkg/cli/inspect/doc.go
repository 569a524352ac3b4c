// Package inspect implements the commands that show add-ons, plans and versions. It only reads the hub.
package inspect
