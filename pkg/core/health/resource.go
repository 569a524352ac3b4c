package health

// persistentVolumeClaim judges a claim without knowing its StorageClass.
func persistentVolumeClaim(f *fields) verdict {
	switch phase := f.text("status", "phase"); phase {
	case "Bound":
		return healthyf("is bound")
	case "Lost":
		return failedf("has lost its volume")
	}
	if volume := f.text("spec", "volumeName"); volume != "" {
		return progressingf("is not bound yet (PersistentVolume %s)", volume)
	}
	if class := classOf(f); class != nil && *class != "" {
		return progressingf("is not bound yet (StorageClass %s)", *class)
	}
	return progressingf("is not bound yet (no StorageClass)")
}

// classOf returns the name of a claim's StorageClass; empty if it is to have none, and nil if it gets the default. The annotation of
// Kubernetes before 1.6 is still valid and comes first.
func classOf(f *fields) *string {
	for _, path := range [][]string{{"metadata", "annotations", "volume.beta.kubernetes.io/storage-class"}, {"spec", "storageClassName"}} {
		if f.has(path...) {
			name := f.text(path...)
			return &name
		}
	}
	return nil
}

// persistentVolume is also healthy once its claim is deleted: the reclaim policy determines what happens then.
func persistentVolume(f *fields) verdict {
	switch phase := f.text("status", "phase"); phase {
	case "Available", "Bound", "Released":
		return healthyf("is %s", phase)
	case "Failed":
		return failedf("failed: %s", foreign(f.text("status", "reason"), f.text("status", "message")))
	default:
		return progressingf("is not available yet")
	}
}

// service waits for the address of a load balancer; every other type is healthy as soon as it exists.
func service(f *fields) verdict {
	if f.text("spec", "type") != "LoadBalancer" {
		return healthyf("exists")
	}
	if len(f.list("status", "loadBalancer", "ingress")) == 0 {
		return progressingf("its load balancer has no address yet")
	}
	return healthyf("its load balancer has an address")
}

func namespace(f *fields) verdict {
	switch f.text("status", "phase") {
	case "Active":
		return healthyf("is active")
	case "Terminating":
		return progressingf("is being deleted")
	default:
		return progressingf("is not active yet")
	}
}

func customResourceDefinition(f *fields) verdict {
	if c := f.condition("NamesAccepted"); c.isFalse() {
		return failedf("its names are not accepted: %s", c.why())
	}
	if c := f.condition("Established"); !c.isTrue() {
		return progressingf("is not established yet")
	}
	return healthyf("is established")
}

// apiService is Progressing while the service behind it does not respond: the server may still be starting.
func apiService(f *fields) verdict {
	c := f.condition("Available")
	switch {
	case c.isTrue():
		return healthyf("is available")
	case c.why() != "":
		return progressingf("is not available: %s", c.why())
	default:
		return progressingf("is not available yet")
	}
}
