{{- define "godwit.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "godwit.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "godwit.labels" -}}
{{ include "godwit.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "godwit.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "godwit.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "godwit.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- /* The user is that of the image. */ -}}
{{- define "godwit.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "godwit.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
privileged: false
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* What the server and the migration need to open the store. */ -}}
{{- define "godwit.storeEnv" -}}
- name: GODWIT_STORE
  valueFrom:
    secretKeyRef:
      name: {{ .Values.secrets.store.name }}
      key: {{ .Values.secrets.store.key }}
- name: GODWIT_KEYRING_FILE
  value: /etc/godwit/keyring
{{- end -}}

{{- define "godwit.volumes" -}}
- name: data
  emptyDir: {}
- name: keys
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ .Values.secrets.keyring.name }}
          items: [{key: {{ .Values.secrets.keyring.key | quote }}, path: keyring}]
      - secret:
          name: {{ .Values.secrets.evidenceKey.name }}
          items: [{key: {{ .Values.secrets.evidenceKey.key | quote }}, path: evidence.key}]
{{- end -}}

{{- define "godwit.volumeMounts" -}}
- {name: data, mountPath: /data}
- {name: keys, mountPath: /etc/godwit, readOnly: true}
{{- end -}}
