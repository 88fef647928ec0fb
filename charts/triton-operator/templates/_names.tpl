{{- define "triton-operator.name" -}}
{{- if contains "triton-operator" .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{ else }}{{ printf "%s-triton-operator" .Release.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "triton-operator.selector" -}}
app.kubernetes.io/name: triton-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "triton-operator.labels" -}}
{{ include "triton-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
