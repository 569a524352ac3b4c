// Package details implements the commands that show details of Instances and add-ons: their history, parameters, events and drift, and the logs of
// their pods. It only reads the hub and, for logs, the managed cluster.
package details
