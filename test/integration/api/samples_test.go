package api

import "strings"

// longText makes the largest OperatorVersions of the specs about one megabyte.
var longText = strings.Repeat("# A line of a template that somebody took the time to write.\n", 650)

// kudoOperatorVersion is an OperatorVersion with every field of KUDO 0.19, as its client writes them.
const kudoOperatorVersion = `
metadata: {name: pond-4.2.0-1.3.1}
spec:
  operator:
    apiVersion: kudo.dev/v1beta1
    kind: Operator
    name: pond
  version: 1.3.1
  appVersion: 4.2.0
  connectionString: "{{ .Name }}.{{ .Namespace }}:9000"
  upgradableFrom:
  - {kind: OperatorVersion, name: pond-4.1.0-1.2.0}
  templates:
    fish.yaml: |
      apiVersion: v1
      kind: ConfigMap
      metadata:
        name: {{ .Name }}-fish
    child.yaml: "DEPTH: {{ .Params.DEPTH }}"
  parameters:
  - name: FISH
    displayName: Number of fish
    description: How many fish swim in the pond
    default: "2000000"
    required: true
    trigger: restock
    value-type: integer
    immutable: false
  - name: WATER
    value-type: string
    enum: [fresh, salt]
    default: fresh
    immutable: true
  - name: OWNER
    required: false
    value-type: map
  tasks:
  - {name: fill, kind: Apply, spec: {resources: [fish.yaml]}}
  - {name: drain, kind: Delete, spec: {resources: [fish.yaml]}}
  - {name: light, kind: Toggle, spec: {parameter: LIGHT, resources: [fish.yaml]}}
  - {name: wait, kind: Dummy, spec: {done: true, wantErr: true, fatal: true}}
  - name: sample
    kind: Pipe
    spec:
      pod: fish.yaml
      pipe:
      - {file: /tmp/water, kind: ConfigMap, key: water}
      - {envFile: /tmp/env, kind: Secret, key: env}
  - name: river
    kind: KudoOperator
    spec: {package: river, instanceName: inflow, appVersion: 1.0.0, operatorVersion: 0.2.0, parameterFile: child.yaml}
  plans:
    deploy:
      strategy: serial
      phases:
      - name: water
        strategy: parallel
        steps:
        - {name: fill, tasks: [river, fill]}
        - {name: light, tasks: [light]}
    restock:
      strategy: parallel
      phases:
      - name: fish
        strategy: serial
        steps:
        - {name: count, tasks: [sample]}
`

// kudoInstance is an Instance with every field of KUDO 0.19, as its client and its manager write them.
const kudoInstance = `
metadata: {name: pond}
spec:
  operatorVersion: {apiVersion: kudo.dev/v1beta1, kind: OperatorVersion, name: pond-4.2.0-1.3.1}
  parameters: {FISH: "12", WATER: salt}
  planExecution: {planName: restock, uid: 8c5f6a1e-5a0e-4d5b-9d8e-0a4c2a4de001, status: IN_PROGRESS}
status:
  conditions:
  - type: Ready
    status: "False"
    reason: PlanExecution
    message: plan restock is running
    lastTransitionTime: "2021-03-04T05:06:07Z"
    observedGeneration: 3
  planStatus:
    deploy:
      name: deploy
      status: COMPLETE
      uid: 8c5f6a1e-5a0e-4d5b-9d8e-0a4c2a4de000
      lastUpdatedTimestamp: "2021-03-04T05:00:00Z"
      phases:
      - name: water
        status: COMPLETE
        steps:
        - {name: fill, status: COMPLETE}
        - {name: light, status: COMPLETE}
    restock:
      name: restock
      status: ERROR
      message: "a transient error"
      uid: 8c5f6a1e-5a0e-4d5b-9d8e-0a4c2a4de001
      lastUpdatedTimestamp: "2021-03-04T05:06:07Z"
      phases:
      - name: fish
        status: ERROR
        message: "a transient error"
        steps:
        - {name: count, status: ERROR, message: "a transient error"}
    cleanup: {name: cleanup, status: NEVER_RUN}
`
