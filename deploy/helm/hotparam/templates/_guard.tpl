{{- define "hotparam.guardSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: guard
{{- end }}

{{- define "hotparam.guardLabels" -}}
{{ include "hotparam.guardSelector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Ports of the doors that are open, by the doors' names. */}}
{{- define "hotparam.guardDoors" -}}
{{- $doors := dict }}
{{- range $name := list "rls" "auth" "check" "spoe" }}
{{- with index $.Values.guard.ports $name }}{{ $_ := set $doors $name (int .) }}{{ end }}
{{- end }}
{{- $doors | toYaml }}
{{- end }}

{{/* Port names begin with the protocol, by which Istio knows it. */}}
{{- define "hotparam.guardPortName" -}}
{{ get (dict "rls" "grpc-rls" "auth" "http-auth" "check" "http-check" "spoe" "tcp-spoe") . }}
{{- end }}

{{/* The section guard of the rules file: who may ask. Addresses are flags of the container, so
     that a sidecar can read the same file. */}}
{{- define "hotparam.guardConfig" -}}
{{- $peers := dict "allow" .Values.guard.allow }}
{{- $tokens := deepCopy $peers }}
{{- if or .Values.guard.existingSecret .Values.guard.token }}{{ $_ := set $tokens "token_env" "HOTPARAM_GUARD_TOKEN" }}{{ end }}
{{- dict "rls" $peers "spoe" $peers "check" $tokens "auth" (list $tokens) | toYaml }}
{{- end }}

{{/* The container of a guard: of is this chart's scope, doors the ports by the doors' names,
     host is empty or the address where doors listen, mounts are volumes beside the file's. */}}
{{- define "hotparam.guardContainer" -}}
{{- $host := .host }}
{{- $doors := .doors }}
{{- $mounts := .mounts }}
{{- with .of }}
name: guard
image: {{ include "hotparam.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args:
  - guard
  - --config=/etc/hotparam/hotparam.yaml
  - --log-format={{ .Values.logFormat }}
  - --http=:{{ .Values.guard.ports.http }}
  {{- range $name, $port := $doors }}
  - --{{ $name }}={{ $host }}:{{ $port }}
  {{- end }}
  {{- with .Values.guard.extraArgs }}{{ toYaml . | nindent 2 }}{{ end }}
env:
  - {name: GOMEMLIMIT, value: {{ .Values.guard.goMemoryLimit | quote }}}
  {{- if or .Values.redis.existingSecret .Values.redis.password }}
  - name: REDIS_PASSWORD
    valueFrom:
      secretKeyRef:
        name: {{ .Values.redis.existingSecret | default (include "hotparam.fullname" .) }}
        key: {{ .Values.redis.existingSecretKey }}
  {{- end }}
  {{- if and .Values.guard.enabled (or .Values.guard.existingSecret .Values.guard.token) }}
  - name: HOTPARAM_GUARD_TOKEN
    valueFrom:
      secretKeyRef:
        name: {{ .Values.guard.existingSecret | default (include "hotparam.fullname" .) }}
        key: {{ .Values.guard.existingSecretKey }}
  {{- end }}
  {{- with .Values.guard.extraEnv }}{{ toYaml . | nindent 2 }}{{ end }}
livenessProbe:
  httpGet: {path: /-/healthy, port: {{ .Values.guard.ports.http }}}
  periodSeconds: 10
  timeoutSeconds: 3
resources: {{- toYaml .Values.guard.resources | nindent 2 }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
volumeMounts:
  # As a directory: a file mounted by subPath would never change.
  - {name: hotparam, mountPath: /etc/hotparam, readOnly: true}
  {{- with $mounts }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}
{{- end }}

{{/* A guard beside a gateway or an application, for charts that depend on this one. Doors listen
     on 127.0.0.1. In the pod's spec:

       initContainers:
         - {{- include "hotparam.guardSidecar" (dict "of" .Subcharts.hotparam "doors" (dict "auth" 9132)) | nindent 4 }}
       volumes:
         - {{- include "hotparam.guardVolume" .Subcharts.hotparam | nindent 4 }}

     As an initContainer that is restarted it starts before the gateway and ends after it. It has
     no startup and no readiness probe: a gateway that lets requests pass without the guard need
     not wait for it. */}}
{{- define "hotparam.guardSidecar" -}}
{{ include "hotparam.guardContainer" (dict "of" .of "doors" .doors "host" "127.0.0.1") }}
restartPolicy: Always
{{- end }}

{{- define "hotparam.guardVolume" -}}
name: hotparam
configMap: {name: {{ include "hotparam.fullname" . }}}
{{- end }}
