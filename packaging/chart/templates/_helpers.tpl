{{- define "firebreak.selector" -}}
app.kubernetes.io/name: firebreak
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "firebreak.labels" -}}
{{ include "firebreak.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
