{{- define "planner.labels" -}}
{{ include "planner.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "planner.selector" -}}
app.kubernetes.io/name: consumer-planner
app.kubernetes.io/component: controller
{{- end }}

{{- define "planner.scheduleLabels" -}}
{{ include "planner.scheduleSelector" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "planner.sparkLabels" -}}
app.kubernetes.io/name: consumer-planner
app.kubernetes.io/component: spark
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Not the controller's: its Service, budget and network policy are not for these pods. */}}
{{- define "planner.scheduleSelector" -}}
app.kubernetes.io/name: consumer-planner
app.kubernetes.io/component: schedule
{{- end }}

{{- define "planner.samplerSelector" -}}
app.kubernetes.io/name: consumer-planner
app.kubernetes.io/component: sampler
{{- end }}

{{- /* What runs and sampler share: policies to read, and the data folder in which the ones look back at the other. */}}
{{- define "planner.scheduleVolumes" -}}
{{- $schedule := .Values.schedule -}}
- name: tmp
  emptyDir:
    sizeLimit: 64Mi
{{- if not $schedule.policies.namespace }}
- name: policies
  {{- if $schedule.policies.existingClaim }}
  persistentVolumeClaim:
    claimName: {{ $schedule.policies.existingClaim }}
  {{- else }}
  configMap:
    name: {{ $schedule.policies.configMap }}
  {{- end }}
{{- end }}
- name: data
  persistentVolumeClaim:
    claimName: {{ $schedule.data.existingClaim | default "consumer-planner-schedule" }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Where runs and sampler read the policies, as an argument. */}}
{{- define "planner.policies" -}}
{{- with .Values.schedule.policies.namespace }}k8s://{{ . }}{{ else }}/policies{{ end }}
{{- end }}

{{- /* Which files policies of a namespace may name, and where what stands in them may be sent. */}}
{{- define "planner.policyBounds" -}}
- name: PLANNER_POLICY_FILES
  value: /policy-files
- name: PLANNER_SECRET_HOSTS
  value: {{ .Values.secretHosts | toJson | quote }}
{{- end }}

{{- /* Who the controller is. The admission policies know it by this name. */}}
{{- define "planner.account" -}}
consumer-planner-controller
{{- end }}

{{- define "planner.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* The namespaces whose plans are carried out, as YAML; none where it is all of them. */}}
{{- define "planner.namespaces" -}}
{{- if and .Values.watch.allNamespaces .Values.watch.namespaces }}
{{- fail "watch.allNamespaces is true and watch.namespaces names some: choose one of the two" }}
{{- end }}
{{- if not .Values.watch.allNamespaces }}
{{- toYaml (default (list .Release.Namespace) .Values.watch.namespaces) }}
{{- end }}
{{- end }}

{{- /* All documents of one kind in a folder of manifests that the chart shares with ../k8s, by name, as YAML. */}}
{{- define "planner.documents" -}}
{{- $asked := . }}
{{- $found := dict }}
{{- range $path, $_ := .root.Files.Glob (printf "files/%s/*.yaml" .folder) }}
{{- range $text := splitList "\n---\n" ($asked.root.Files.Get $path) }}
{{- $document := fromYaml $text }}
{{- if hasKey $document "Error" }}{{ fail (printf "%s: %s" $path $document.Error) }}{{ end }}
{{- if eq $document.kind $asked.kind }}{{ $_ := set $found $document.metadata.name $document }}{{ end }}
{{- end }}
{{- end }}
{{- toYaml $found }}
{{- end }}

{{- /* What Pod Security asks for under the name restricted. */}}
{{- define "planner.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "planner.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
