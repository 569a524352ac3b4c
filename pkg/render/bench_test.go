package render

import (
	"fmt"
	"testing"
)

// BenchmarkObjects renders a package of 30 templates, each a StatefulSet with parameters.
func BenchmarkObjects(b *testing.B) {
	const workload = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Name }}-%d", namespace: "{{ .Namespace }}", labels: {app: zk}}
spec:
  replicas: {{ .Params.NODES }}
  selector: {matchLabels: {app: zk}}
  serviceName: "{{ .Name }}-hs"
  template:
    metadata: {labels: {app: zk}}
    spec:
      containers:
      - name: zookeeper
        image: zookeeper:3.6.2
        env:
        {{- range $i, $host := .Params.HOSTS }}
        - {name: "HOST_{{ $i }}", value: {{ $host | quote }}}
        {{- end }}
        resources: {requests: {memory: 1Gi, cpu: 250m}, limits: {memory: 2Gi, cpu: "1"}}
        ports: [{containerPort: 2181, name: client}, {containerPort: 2888, name: server}]
        readinessProbe: {exec: {command: [sh, -c, "healthcheck 2181"]}, initialDelaySeconds: 10}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 5Gi}}}
`
	var templates, names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("%d.yaml", i))
		templates = append(templates, names[i], fmt.Sprintf(workload, i))
	}
	c := newContext(templates...)
	b.ReportAllocs()
	for b.Loop() {
		if objects, err := Objects(c, names...); err != nil || len(objects) != 30 {
			b.Fatal(len(objects), err)
		}
	}
}
