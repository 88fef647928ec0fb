{{- /* What both admission policies begin with: whom they judge, and that nothing passes that they cannot judge. */ -}}
{{- define "triton-operator.judged" -}}
failurePolicy: Fail
matchConditions:
- name: the-operator
  expression: request.userInfo.username == 'system:serviceaccount:{{ .Release.Namespace }}:{{ include "triton-operator.name" . }}'
{{- end }}

{{- /* The binding of a policy to the whole cluster, from a list of the root and the policy's name. */ -}}
{{- define "triton-operator.admission-binding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ index . 1 }}
  labels:
    {{- include "triton-operator.labels" (index . 0) | nindent 4 }}
spec:
  policyName: {{ index . 1 }}
  validationActions: [Deny]
{{- end }}
