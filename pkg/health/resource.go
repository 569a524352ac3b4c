package health

// persistentVolume is also healthy once its claim is deleted: the reclaim policy determines what happens then.
func persistentVolume(f *fields) verdict {
	switch phase := f.text("status", "phase"); phase {
	case "Available", "Bound", "Released":
		return healthy("is %s", phase)
	case "Failed":
		return failed("failed: %s", foreign(f.text("status", "reason"), f.text("status", "message")))
	default:
		return progressing("is not available yet")
	}
}

// service waits for the address of a load balancer; every other type is healthy as soon as it exists.
func service(f *fields) verdict {
	if f.text("spec", "type") != "LoadBalancer" {
		return healthy("exists")
	}
	if len(f.list("status", "loadBalancer", "ingress")) == 0 {
		return progressing("its load balancer has no address yet")
	}
	return healthy("its load balancer has an address")
}

func namespace(f *fields) verdict {
	switch f.text("status", "phase") {
	case "Active":
		return healthy("is active")
	case "Terminating":
		return progressing("is being deleted")
	default:
		return progressing("is not active yet")
	}
}

func customResourceDefinition(f *fields) verdict {
	if c := f.condition("NamesAccepted"); c.isFalse() {
		return failed("its names are not accepted: %s", c.why())
	}
	if c := f.condition("Established"); !c.isTrue() {
		return progressing("is not established yet")
	}
	return healthy("is established")
}

// apiService is Progressing while the service behind it does not respond: the server may still be starting.
func apiService(f *fields) verdict {
	c := f.condition("Available")
	switch {
	case c.isTrue():
		return healthy("is available")
	case c.why() != "":
		return progressing("is not available: %s", c.why())
	default:
		return progressing("is not available yet")
	}
}
