/** The rules look into these. Another could start containers that no rule has seen. */
export const KINDS = [
  'Namespace',
  'ConfigMap',
  'Secret',
  'PersistentVolumeClaim',
  'Pod',
  'Deployment',
  'StatefulSet',
  'Service',
  'PodDisruptionBudget',
  'NetworkPolicy',
  'Ingress',
]

/** What a pod is described by. Not `hostPID`: nothing reaches into a container of its. What starts before them has a rule of its own. */
export const POD_MEMBERS = [
  'hostname',
  'subdomain',
  'runtimeClassName',
  'restartPolicy',
  'automountServiceAccountToken',
  'enableServiceLinks',
  'terminationGracePeriodSeconds',
  'affinity',
  'securityContext',
  'initContainers',
  'containers',
  'volumes',
]

/** What a container may say about its rights. Not `privileged`, and no profile of its own. */
export const SECURITY_MEMBERS = [
  'runAsNonRoot',
  'runAsUser',
  'runAsGroup',
  'allowPrivilegeEscalation',
  'readOnlyRootFilesystem',
  'capabilities',
]

/** What a container of ours is described by. Not `command` and `workingDir`: its image says what is started, and where. */
export const CONTAINER_MEMBERS = [
  'name',
  'image',
  'args',
  'env',
  'ports',
  'securityContext',
  'lifecycle',
  'startupProbe',
  'readinessProbe',
  'livenessProbe',
  'resources',
  'volumeMounts',
]
