{{- define "webui.name" -}}{{ printf "%s-webui" .Release.Name | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "webui.selector" -}}
app.kubernetes.io/name: ssebench-webui
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "webui.labels" -}}
{{ include "webui.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "webui.secret" -}}{{ .Values.auth.existingSecret | default (printf "%s-auth" (include "webui.name" .)) }}{{- end }}
{{- define "webui.runs" -}}{{ .Values.runs.namespace | default .Release.Namespace }}{{- end }}
