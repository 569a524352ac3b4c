// Package change has the commands that change add-ons and Instances, run plans, and wait for what comes of it. It writes to the hub; join
// writes to the managed cluster too.
package change
