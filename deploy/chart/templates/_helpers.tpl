{{- /* The image of a program: (list . NAME .Values.PROGRAM.image). */ -}}
{{- define "tandem.image" -}}
{{- $root := index . 0 -}}
{{- $repository := required "image.repository is required: the registry and folder of Tandem's images" $root.Values.image.repository -}}
{{- with (index . 2).digest -}}
{{ $repository }}/{{ index $ 1 }}@{{ . }}
{{- else -}}
{{ $repository }}/{{ index . 1 }}:{{ default $root.Chart.AppVersion $root.Values.image.tag }}
{{- end -}}
{{- end -}}

{{- /* More arguments of a program, as items of a list: .Values.PROGRAM. */ -}}
{{- define "tandem.arguments" -}}
{{- with .extraArgs }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{- /* The fields of a pod that are omitted by default: (list . .Values.PROGRAM). */ -}}
{{- define "tandem.pod" -}}
{{- $pod := dict -}}
{{- with (index . 0).Values.image.pullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- $program := index . 1 -}}
{{- range list "nodeSelector" "tolerations" "affinity" "priorityClassName" -}}
{{- $field := . -}}
{{- with index $program . }}{{ $_ := set $pod $field . }}{{ end -}}
{{- end -}}
{{- with $pod }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{- /* The variable of the delivered agent with the Secrets that pull its image. */ -}}
{{- define "tandem.deliveredPullSecrets" -}}
{{- with .Values.image.pullSecrets -}}
{{- $names := list -}}
{{- range . }}{{ $names = append $names .name }}{{ end -}}
- name: ImagePullSecrets
  value: {{ join "," $names | quote }}
{{- end -}}
{{- end -}}
