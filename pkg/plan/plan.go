// Package plan decides which plan of an OperatorVersion runs, and what is to be done next in one that runs. It is pure: it
// touches no cluster and reads no clock.
//
// Decide is the whole of it: from an Observation to the next Action. It composes the rules by which an execution goes round in four
// steps: Choose says which plan to start, Start makes its status, Next lists the tasks whose turn it is, and Advance folds what came of
// them into the status. Whoever carries tasks out keeps nothing but that status, and so can stop and go on at any point.
package plan
