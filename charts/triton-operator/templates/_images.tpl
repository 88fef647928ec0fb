{{- define "triton-operator.image" -}}
{{ .repository }}{{ with .tag }}:{{ . }}{{ end }}{{ with .digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "triton-operator.serverImage" -}}
{{ ternary "serverCpu" "server" .Values.server.cpu }}
{{- end }}

{{- /* An image that nobody can pull would only show later, in a pod that waits. */ -}}
{{- define "triton-operator.requireImages" -}}
{{- $missing := list }}
{{- $names := list "operator" "converter" "converterTensorflow" (include "triton-operator.serverImage" .) }}
{{- with .Values.images.converterGpu }}
{{- if or .repository .tag .digest }}
{{- $names = append $names "converterGpu" }}
{{- end }}
{{- end }}
{{- range $name := $names }}
{{- $image := index $.Values.images $name }}
{{- if not (and $image.repository (or $image.tag $image.digest)) }}
{{- $missing = append $missing (printf "images.%s" $name) }}
{{- end }}
{{- end }}
{{- if $missing }}
{{- fail (printf "set the repository and the digest (or the tag) of %s: the chart of the source tree names no images. The chart of a release does; docs/install.md says how to install it" (join ", " $missing)) }}
{{- end }}
{{- end }}
