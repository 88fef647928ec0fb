{{- /*
What the operator may do: the verbs of operator/triton_operator/kube/kinds.py, no more (tests/apiserver/test_chart.py checks).
*/ -}}
{{- define "triton-operator.rules" -}}
- apiGroups: [triton-operator.dev]
  resources: [tritondeployments]
  verbs: [list, watch]
- apiGroups: [triton-operator.dev]
  resources: [tritondeployments/status]
  verbs: [patch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [create, delete, get, list, watch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: [""]
  resources: [configmaps, persistentvolumeclaims]
  verbs: [create, get, list, patch, watch]
- apiGroups: [""]
  resources: [services]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, list, watch]
{{- if .Values.autoscaling.prometheusAddress }}
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [create, delete, get, list, patch, watch]
{{- end }}
{{- if .Values.gatewayApi.enabled }}
- apiGroups: [gateway.networking.k8s.io]
  resources: [httproutes]
  verbs: [create, delete, get, list, patch, watch]
{{- end }}
{{- end }}
