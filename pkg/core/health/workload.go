package health

// onDelete is the update strategy that does not delete pods of an older revision.
const onDelete = "OnDelete"

// deployment follows `kubectl rollout status`, and checks the progress deadline last: after a failed rollout, the controller may leave its
// condition in place for one or more writes of the next rollout. A Deployment whose replicas cannot be created (a quota, an admission)
// retries until its deadline, so it is Progressing until then.
func deployment(f *fields) verdict {
	v, complete := rollout(f)
	if c := f.condition("Progressing"); !complete && c.isFalse() && c.reason == "ProgressDeadlineExceeded" {
		return failedf("%s", c.why())
	}
	return v
}

// rollout judges a Deployment by its counts. It is complete once there are enough replicas of the current template and every replica is
// available: replicas of an older template may still be terminating, but no deadline can be exceeded any more.
func rollout(f *fields) (v verdict, complete bool) {
	replicas := f.integer(1, "spec", "replicas")
	updated := f.integer(0, "status", "updatedReplicas")
	available := f.integer(0, "status", "availableReplicas")
	total := f.integer(0, "status", "replicas")
	complete = updated >= replicas && available >= total
	switch {
	case updated < replicas && f.boolean("spec", "paused"):
		v = progressingf("%d of %d replicas updated, rollout is paused", updated, replicas)
	case updated < replicas:
		v = withReplicaFailure(f, progressingf("%d of %d replicas updated", updated, replicas))
	case total > updated:
		v = progressingf("%d old replicas are pending termination", total-updated)
	case total > replicas:
		v = progressingf("%d surplus replicas are pending termination", total-replicas)
	case available < updated:
		v = withReplicaFailure(f, progressingf("%d of %d replicas available", available, replicas))
	default:
		v = healthyf("%d of %d replicas available", available, replicas)
	}
	return v, complete
}

// withReplicaFailure adds why pods cannot be created or deleted.
func withReplicaFailure(f *fields, v verdict) verdict {
	if c := f.condition("ReplicaFailure"); c.isTrue() {
		v.message += ": " + c.why()
	}
	return v
}

// replicaSet judges ReplicaSets and ReplicationControllers.
func replicaSet(f *fields) verdict {
	replicas := f.integer(1, "spec", "replicas")
	available := f.integer(0, "status", "availableReplicas")
	total := f.integer(0, "status", "replicas")
	switch {
	case available < replicas:
		return withReplicaFailure(f, progressingf("%d of %d replicas available", available, replicas))
	case total > replicas:
		return withReplicaFailure(f, progressingf("%d surplus replicas are pending termination", total-replicas))
	default:
		return healthyf("%d of %d replicas available", available, replicas)
	}
}

// statefulSet waits until all pods are ready, and until those that the update strategy covers are updated: with a partition those from its
// ordinal on, with OnDelete none.
func statefulSet(f *fields) verdict {
	replicas := f.integer(1, "spec", "replicas")
	total := f.integer(0, "status", "replicas")
	ready := f.integer(0, "status", "readyReplicas")
	updated := f.integer(0, "status", "updatedReplicas")
	toUpdate := max(0, replicas-f.integer(0, "spec", "updateStrategy", "rollingUpdate", "partition"))
	if f.text("spec", "updateStrategy", "type") == onDelete {
		toUpdate = 0
	}
	growing := total < replicas && f.text("status", "currentRevision") == f.text("status", "updateRevision")
	switch {
	case updated < toUpdate && !growing:
		return progressingf("%d of %d pods updated", updated, toUpdate)
	case ready < replicas:
		return progressingf("%d of %d pods ready", ready, replicas)
	case total > replicas:
		return progressingf("%d surplus pods are pending termination", total-replicas)
	}
	if available := f.integer(0, "status", "availableReplicas"); available < replicas && f.integer(0, "spec", "minReadySeconds") > 0 {
		return progressingf("%d of %d pods available", available, replicas)
	}
	return healthyf("%d of %d pods ready", ready, replicas)
}

func daemonSet(f *fields) verdict {
	desired := f.integer(0, "status", "desiredNumberScheduled")
	updated := f.integer(0, "status", "updatedNumberScheduled")
	available := f.integer(0, "status", "numberAvailable")
	switch {
	case updated < desired && f.text("spec", "updateStrategy", "type") != onDelete:
		return progressingf("%d of %d pods updated", updated, desired)
	case available < desired:
		return progressingf("%d of %d pods available", available, desired)
	default:
		return healthyf("%d of %d pods available", available, desired)
	}
}
