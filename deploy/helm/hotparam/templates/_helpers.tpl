{{- define "hotparam.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "hotparam.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: aggregator
{{- end }}

{{- define "hotparam.labels" -}}
{{ include "hotparam.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "hotparam.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "hotparam.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "hotparam.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The rules file: what values say, and where this chart's parts are. */}}
{{- define "hotparam.config" -}}
{{- $full := include "hotparam.fullname" . }}
{{- $addresses := list }}
{{- range $i := until (int .Values.replicas) }}
{{- $addresses = append $addresses (printf "%s-%d.%s.%s.svc:%d" $full $i $full $.Release.Namespace (int $.Values.service.statsdPort)) }}
{{- end }}
{{- $redis := dict "url" .Values.redis.url }}
{{- with .Values.redis.username }}{{ $_ := set $redis "username" . }}{{ end }}
{{- if or .Values.redis.existingSecret .Values.redis.password }}{{ $_ := set $redis "password_env" "REDIS_PASSWORD" }}{{ end }}
{{- $aggregator := dict
      "listen" (printf "0.0.0.0:%d" (int .Values.service.statsdPort))
      "http" (printf "0.0.0.0:%d" (int .Values.service.httpPort))
      "redis" $redis
      "memory" .Values.memory
      "page" (ternary "on" "off" .Values.page.enabled) }}
{{- if gt (int .Values.replicas) 1 }}{{ $_ := set $aggregator "lease" true }}{{ end }}
{{- if and .Values.page.enabled (or .Values.page.existingSecret .Values.page.token) }}{{ $_ := set $aggregator "page_token_env" "HOTPARAM_PAGE_TOKEN" }}{{ end }}
{{- with .Values.page.hosts }}{{ $_ := set $aggregator "page_hosts" . }}{{ end }}
{{- if .Values.history.enabled }}
{{- $history := dict "keep" .Values.history.keep "memory" .Values.history.memory }}
{{- $own := dict }}
{{- with .Values.history.redis.url }}{{ $_ := set $own "url" . }}{{ end }}
{{- with .Values.history.redis.username }}{{ $_ := set $own "username" . }}{{ end }}
{{- if .Values.history.redis.existingSecret }}{{ $_ := set $own "password_env" "HISTORY_REDIS_PASSWORD" }}{{ end }}
{{- if $own }}{{ $_ := set $history "redis" $own }}{{ end }}
{{- $_ := set $aggregator "history" $history }}
{{- end }}
{{- $parts := dict "aggregator" $aggregator }}
{{- if .Values.guard.enabled }}{{ $_ := set $parts "guard" (fromYaml (include "hotparam.guardConfig" .)) }}{{ end }}
{{- $statsd := dict "addresses" $addresses }}
{{- if gt (int .Values.replicas) 1 }}{{ $_ := set $statsd "spread" "all" }}{{ end }}
{{- $_ := set $parts "statsd" $statsd }}
{{- mergeOverwrite $parts .Values.config | toYaml }}
{{- end }}
