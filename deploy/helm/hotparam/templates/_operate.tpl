{{- define "hotparam.operateSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operate
{{- end }}

{{- define "hotparam.operateLabels" -}}
{{ include "hotparam.operateSelector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The rules file with the operator's Redis user, who also reads the history. */}}
{{- define "hotparam.operateConfig" -}}
{{- $file := fromYaml (include "hotparam.config" .) }}
{{- $user := dict "username" .Values.operate.redis.username "password_env" "REDIS_PASSWORD" }}
{{- $redis := merge (deepCopy $user) (dict "url" (.Values.operate.redis.url | default $file.aggregator.redis.url)) }}
{{- $_ := set $file.aggregator "redis" $redis }}
{{- with $file.aggregator.history }}
{{- if .redis }}{{ $_ := set . "redis" (merge (deepCopy $user) (pick .redis "url")) }}{{ end }}
{{- end }}
{{- $file | toYaml }}
{{- end }}
