import type { Trial } from './trial.ts'

/** All trials by the name of their npm command. Each module is loaded when it runs. */
export const trials: Readonly<Record<string, () => Promise<Trial>>> = {
  bench: async () => (await import('./bench/runBench.ts')).bench,
  budgets: async () => (await import('./budgets/runBudgets.ts')).budgets,
  'budgets:restart': async () => (await import('./budgets/runRestart.ts')).budgetsRestart,
  checkpoints: async () => (await import('./checkpoints/runCheckpoints.ts')).checkpoints,
  cluster: async () => (await import('./cluster/runCluster.ts')).cluster,
  failover: async () => (await import('./failover/runFailover.ts')).failover,
  faults: async () => (await import('./faults/runFaults.ts')).faults,
  fuzz: async () => (await import('./fuzz/fuzz.ts')).fuzzTrial,
  life: async () => (await import('./life/runLife.ts')).life,
  'log:attacks': async () => (await import('./log/runAttacks.ts')).logAttacks,
  'log:kills': async () => (await import('./log/runKills.ts')).logKills,
  'log:signings': async () => (await import('./log/runSignings.ts')).logSignings,
  'monitor:history': async () => (await import('./monitor/runHistory.ts')).monitorHistory,
  'monitor:situations': async () => (await import('./monitor/runSituations.ts')).monitorSituations,
  retention: async () => (await import('./retention/runRetention.ts')).retention,
  security: async () => (await import('./security/runSecurity.ts')).security,
  soak: async () => (await import('./soak/runSoak.ts')).soak,
  source: async () => (await import('./source/runSource.ts')).sourceTrial,
  sweep: async () => (await import('./sweep/runSweep.ts')).sweepTrial,
  webhooks: async () => (await import('./webhooks/runWebhooks.ts')).webhooks,
  'witness:kills': async () => (await import('./witness/runKills.ts')).witnessKills,
}
