{{- /*
What the operator's pod and the pod of `helm test` have in common: who they are, and where they run.
*/ -}}
{{- define "triton-operator.pod" -}}
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- range $field, $id := .Values.podSecurityContext }}
  {{- if not (kindIs "invalid" $id) }}
  {{ $field }}: {{ int64 $id }}
  {{- end }}
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- $nodes := merge dict .Values.nodeSelector }}
{{- with .Values.architecture }}
{{- $nodes = merge $nodes (dict "kubernetes.io/arch" .) }}
{{- end }}
{{- with $nodes }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "triton-operator.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
