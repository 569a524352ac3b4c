// Package plan decides which plan of an OperatorVersion runs, and what the next step of a running plan is. It is pure: it touches no
// cluster and reads no clock.
//
// Decide is the entry point: it maps an Observation to the next Action. It composes the four steps of an execution: Choose selects the plan
// to start, Start creates its status, Next lists the next tasks, and Advance records their outcomes in the status. The status is the only
// state between passes, so an execution can be interrupted and continued at any point.
package plan
