{{- /* The objects of one copied file, moved into the release's namespace. */ -}}
{{- define "gpushare.file" -}}
{{ .root.Files.Get .path | replace "namespace: gpushare-system" (printf "namespace: %s" .root.Release.Namespace) }}
{{- end -}}

{{- define "gpushare.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{ .Values.image.repository }}{{ hasPrefix "sha256:" $tag | ternary "@" ":" }}{{ $tag }}
{{- end -}}

{{- /* What the programs that the operator starts get of the values, as its option --programs takes it;
  empty when nothing. */ -}}
{{- define "gpushare.programs" -}}
{{- $programs := dict -}}
{{- range $name := list "plugin" "extender" -}}
{{- $given := index $.Values $name -}}
{{- $program := dict -}}
{{- with $given.priorityClassName -}}{{- $_ := set $program "priorityClassName" . -}}{{- end -}}
{{- with $given.resources -}}{{- $_ := set $program "resources" . -}}{{- end -}}
{{- with $program -}}{{- $_ := set $programs $name . -}}{{- end -}}
{{- end -}}
{{- with $programs -}}{{ toJson . }}{{- end -}}
{{- end -}}

{{- define "gpushare.noSidecarLabels" -}}
sidecar.istio.io/inject: "false"
admission.datadoghq.com/enabled: "false"
{{- end -}}

{{- /* Spec of a pod that runs a command of the operator's program, once, where the operator may run, as the account
  gpushare-NAME. */ -}}
{{- define "gpushare.run" -}}
{{- $values := .root.Values -}}
{{- $deployment := .root.Files.Get "files/operator/operator.yaml" | fromYaml -}}
{{- $operator := $deployment.spec.template.spec -}}
serviceAccountName: gpushare-{{ .name }}
restartPolicy: Never
{{- with $values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
priorityClassName: {{ $values.operator.priorityClassName | default $operator.priorityClassName }}
affinity: {{- toYaml ($values.operator.affinity | default $operator.affinity) | nindent 2 }}
tolerations: {{- toYaml ($values.operator.tolerations | default $operator.tolerations) | nindent 2 }}
securityContext: {{- toYaml $operator.securityContext | nindent 2 }}
containers:
- name: {{ .name }}
  image: {{ include "gpushare.image" .root }}
  {{- with $values.image.pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  command: [gpushare-operator]
  args: {{- toYaml .args | nindent 2 }}
  terminationMessagePolicy: FallbackToLogsOnError
  securityContext: {{- toYaml (first $operator.containers).securityContext | nindent 4 }}
  resources:
    requests: {cpu: 20m, memory: 112Mi}
    limits: {memory: 256Mi}
{{- end -}}
