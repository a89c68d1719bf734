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
