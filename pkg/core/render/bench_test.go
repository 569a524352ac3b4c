package render

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkObjects renders a package of 30 templates, each a StatefulSet with parameters: with their defaults, and with values that the
// Instance sets, which are checked. A list that the template encodes has a check of its own.
func BenchmarkObjects(b *testing.B) {
	b.Run("defaults", func(b *testing.B) { benchmarkObjects(b, "", nil) })
	b.Run("values", func(b *testing.B) { benchmarkObjects(b, "", map[string]string{"NODES": "5", "HOSTS": "[c, d, e]"}) })
	b.Run("encoded", func(b *testing.B) {
		benchmarkObjects(b, "hosts:\n{{ toYaml .Params.HOSTS | indent 2 }}\n", map[string]string{"NODES": "5", "HOSTS": "[c, d, e]"})
	})
}

func benchmarkObjects(b *testing.B, more string, values map[string]string) {
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
		templates = append(templates, names[i], fmt.Sprintf(workload, i)+more)
	}
	c := newContext(templates...)
	c.Parameters = values
	b.ReportAllocs()
	for b.Loop() {
		if objects, err := Objects(c, names...); err != nil || len(objects) != 30 {
			b.Fatal(len(objects), err)
		}
	}
}

// BenchmarkInsertedYAML renders a template of 260 KB with 100 parameters whose defaults, and values, are maps.
func BenchmarkInsertedYAML(b *testing.B) {
	c := contextWithInsertions(100, "  k@: <>", "{a: b}", "{c: d, e: f}", strings.Repeat("# a comment of fifty characters, as it may be long\n", 1000)+
		"rest:\n"+strings.Repeat("- {a: b, c: [d, e]}\n", 10_000))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Objects(c, "t"); err != nil {
			b.Fatal(err)
		}
	}
}
