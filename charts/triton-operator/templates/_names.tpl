{{- define "triton-operator.name" -}}
{{- if contains "triton-operator" .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{ else }}{{ printf "%s-triton-operator" .Release.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "triton-operator.selector" -}}
app.kubernetes.io/name: triton-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /*
The labels of an object, from a list of the root and a map of its own further ones. The chart's own cannot be replaced:
selectors need them.
*/ -}}
{{- define "triton-operator.labels-and" -}}
{{- $root := index . 0 }}
{{- $chart := dict "app.kubernetes.io/version" $root.Chart.AppVersion "app.kubernetes.io/managed-by" $root.Release.Service "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version) }}
{{- $selector := include "triton-operator.selector" $root | fromYaml }}
{{- toYaml (merge $selector $chart (index . 1) $root.Values.commonLabels) }}
{{- end }}

{{- define "triton-operator.labels" -}}
{{ include "triton-operator.labels-and" (list . dict) }}
{{- end }}

{{- /*
The namespaces that the operator works in, joined by commas; empty: all.
*/ -}}
{{- define "triton-operator.namespaces" -}}
{{- if .Values.watchNamespaces }}{{ join "," .Values.watchNamespaces }}{{ else if eq .Values.rbac.scope "Namespaced" }}{{ .Release.Namespace }}{{ end }}
{{- end }}
