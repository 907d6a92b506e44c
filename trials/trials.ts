import { availableParallelism } from 'node:os'
import { attackNames } from './security/attack.ts'
import { choices, count, defineTrial, flag, seed, type Trial, word } from './trial.ts'

/** In the order in which they run: the short ones first. */
export const suiteNames = ['verification', 'sign', 'reads', 'pipeline', 'growth']

/** Every trial, by the name of its npm command. What a trial needs is loaded when it runs. */
export const trials: Readonly<Record<string, Trial>> = {
  bench: defineTrial({
    summary: 'Measures the service, one suite after the other.',
    names: suiteNames,
    options: {
      rounds: count(5, 'repeats in which all candidates take turns', { most: 999 }),
      json: word('FILE', 'writes the whole result, with what the machine is'),
      page: word('FILE', 'puts the reports of the suites that ran into a page, such as docs/performance.md'),
      summary: word('FILE', 'puts the main figures of that page into another, such as README.md'),
      quick: flag('small sizes, to try it out: the figures mean little'),
      fixtures: {
        ...word('DIR', 'evidence to measure on; simulated evidence if it is not there'),
        default: '../shared/fixtures',
      },
      against: word('DIR', 'another checkout, ready to run, whose service sign measures in turns with this one'),
      budget: flag('of sign, only the processor time of a signature, by process and thread'),
    },
    example: 'sign --rounds 3 --json sign.json',
    run: async (deps, options, names) => (await import('./bench/runBench.ts')).runBench(deps, options, names),
  }),

  cluster: defineTrial({
    summary: `Starts the whole topology on loopback: PostgreSQL, 3 coordinators behind HAProxy with the file that is deployed (a balancer of ours if
HAProxy is not installed), 2 workers, 2 enclaves with one root secret and attested TLS. Kills, freezes and stops its processes one after
the other under load, and compares the throughput of three coordinators with that of one, behind a balancer of ours.`,
    options: {
      rounds: count(5, 'rounds of the comparison, each in turns; 0 leaves it out', { least: 0 }),
      failovers: count(2, 'times that each process is hit in each way', { least: 0 }),
      connections: { ...word('N,N', 'at which the comparison is made (default 64,256)'), default: '64,256' },
      witnesses: flag('each enclave insists on a log, which 3 witnesses cosign; they are killed and frozen too'),
    },
    example: '--rounds 0 --failovers 1',
    run: async (deps, options) => (await import('./cluster/runCluster.ts')).runCluster(deps, options),
  }),

  failover: defineTrial({
    summary: `Starts PostgreSQL with a standby and TLS required, two coordinators behind HAProxy with the file that is deployed, a worker and an enclave.
Under load it kills the primary and promotes the standby, reloads HAProxy, and restarts it; it takes backups and restores them into an
empty database and an empty server; then it looks for everything that was answered. Needs haproxy, and PostgreSQL with its tools in
/usr/lib/postgresql.`,
    options: {
      parts: choices('NAME,NAME', ['database', 'balancer', 'backups'], 'what happens'),
      rounds: count(5, 'times that each of these happens', { most: 100 }),
      rate: count(30, 'signatures a second', { most: 500 }),
      mode: {
        ...word('MODE', 'sync: a commit waits for the standby; async: it does not (default sync)'),
        default: 'sync',
      },
      lag: count(0, 'milliseconds for which the standby gets nothing before its primary dies', {
        least: 0,
        most: 60_000,
      }),
      outage: count(0, 'milliseconds from the death of the primary to the promotion', { least: 0, most: 60_000 }),
      log: flag('prints the lines of all processes too'),
    },
    example: '--rounds 1 --mode async --lag 500',
    run: async (deps, options) => (await import('./failover/runFailover.ts')).runFailover(deps, options),
  }),

  faults: defineTrial({
    summary:
      'Kills the coordinator and its worker while signatures arrive, and audits the signatures that clients received.',
    options: {
      rounds: count(5, 'times that each named crash point is reached', { least: 0 }),
      kills: count(200, 'kills at random moments after that', { least: 0 }),
      witnesses: flag('with an enclave that has a log: its crash points too, and witnesses die as well'),
      seed: seed('of the random moments'),
    },
    example: '--rounds 1 --kills 10',
    run: async (deps, options) => (await import('./faults/runFaults.ts')).runFaults(deps, options),
  }),

  fuzz: defineTrial({
    summary: `Feeds random and mutated bytes to every parser of the verifier, and other members into receipts: each must answer or throw a typed error.`,
    options: {
      runs: count(100_000, 'inputs in all, shared among the parsers'),
      seed: seed('chooses the inputs'),
    },
    example: '--runs 1000 --seed 7',
    run: async (deps, options) => (await import('./fuzz/fuzz.ts')).runFuzz(deps, options),
  }),

  life: defineTrial({
    summary:
      'Lives of proofs as random commands of workers, chain, pin service and clock; the invariants are checked after each.',
    options: {
      runs: count(1_000, 'sequences', { least: 0 }),
      commands: count(50, 'commands of each', { least: 0 }),
      seed: count(0, 'of the commands; 0: by chance, and printed', { least: 0 }),
    },
    example: '--runs 100 --seed 7',
    run: async (deps, options) => (await import('./life/runLife.ts')).runLife(deps, options),
  }),

  'log:attacks': defineTrial({
    summary: `Attacks the log of a whole backend as its operator could: an old database, a second enclave, an origin without witnesses, a made-up
frontier. Nothing may be released, and a spare origin takes over by itself.`,
    options: { only: word('WORD', 'the attacks with this word in their names') },
    example: '--only database',
    run: async (deps, options) => (await import('./log/runAttacks.ts')).runAttacks(deps, options),
  }),

  'log:kills': defineTrial({
    summary: `Kills enclave, coordinator and witnesses at each named step of a signature with a log, starts them again, and goes on signing. There is
one history, and nothing that was answered is lost or answered in another way.`,
    options: {
      rounds: count(5, 'times that each step is reached'),
      only: word('WORD', 'the steps with this word in their names'),
    },
    example: '--rounds 1 --only witness',
    run: async (deps, options) => (await import('./log/runKills.ts')).runKills(deps, options),
  }),

  'log:signings': defineTrial({
    summary: `Asks for signatures of all kinds through two coordinators, while three witnesses die, lag, lie, fork and answer slowly. Nothing may be
released without a quorum of honest cosignatures, every entry comes to its end, and a caller that got an error gets no signature.`,
    options: {
      count: count(10_000, 'how often a signature is asked for'),
      seed: seed('of what witnesses do and callers ask for'),
      callers: count(48, 'callers that ask side by side'),
      receipts: count(500, 'how many receipts the verifier checks', { least: 0 }),
    },
    example: '--count 500 --seed 7',
    run: async (deps, options) => (await import('./log/runSignings.ts')).runSignings(deps, options),
  }),

  'monitor:history': defineTrial({
    summary: `Has the monitor look at a wallet with many signatures, nine of ten transactions and the rest messages, all honest: nothing may be found. Then
plants four cases, one after the other, which the next look must find by name.`,
    options: { count: count(10_000, 'signatures') },
    example: '--count 500',
    run: async (deps, options) => (await import('./monitor/runHistory.ts')).runHistory(deps, options),
  }),

  'monitor:situations': defineTrial({
    summary:
      'Runs the monitor in twelve situations, each as a separate process, and prints its headline, exit code and webhook as a table.',
    options: { only: word('WORD', 'the situations with this word in their names') },
    example: '--only witness',
    run: async (deps, options) => (await import('./monitor/runSituations.ts')).runSituations(deps, options),
  }),

  retention: defineTrial({
    summary:
      'Signs and publishes, has the worker drop old receipts from the database, kills it while it does, and reads every proof again.',
    options: {
      proofs: count(20_000, 'how many', { least: 600 }),
      receipts: count(2, 'version of the receipts: 1 has 26 kB, 2 has 2 kB', { most: 2 }),
    },
    example: '--proofs 2000 --receipts 1',
    run: async (deps, options) => (await import('./retention/runRetention.ts')).runRetention(deps, options),
  }),

  security: defineTrial({
    summary: `Attacks a whole backend on this machine (identity provider, PostgreSQL, enclave and coordinator as separate processes) and reports what
was tried, with which figures, and what should not have happened.`,
    options: {
      only: choices('NAME', attackNames, 'these attacks'),
      seed: seed('the same one tries the same again'),
      short: flag('as in the tests: fewer of everything, and no judgement of times'),
      json: word('FILE', 'writes the results to a file too'),
    },
    example: '--short --only open-redirect',
    run: async (deps, options) => (await import('./security/runSecurity.ts')).runSecurity(deps, options),
  }),

  soak: defineTrial({
    summary: `Runs the whole topology (PostgreSQL, 3 coordinators behind a balancer, 2 workers, 2 enclaves) under load while processes are killed
and frozen, the database is cut off, and satellite, IPFS and chain fail one call in twenty; then audits the signatures that clients received.`,
    options: {
      minutes: count(10, 'how long; parts of a minute are fine', { least: 0.01, most: 1_440, isWhole: false }),
      seed: seed('of who is hit, and when'),
      calm: flag(`no faults: measures whether memory grows from four tenths of the time to its end, at most 10 % of what is resident after
                 a full collection of garbage, which every process makes at both moments`),
      rate: count(6, 'new signatures per second', { least: 0.1, most: 500, isWhole: false }),
      users: count(24, 'who sign them'),
      witnesses: flag('each enclave insists on a log, which 3 witnesses cosign; they are hit too'),
      log: word('FILE', 'what all processes write'),
    },
    example: '--minutes 1 --log soak.log',
    run: async (deps, options) => (await import('./soak/runSoak.ts')).runSoak(deps, options),
  }),

  sweep: defineTrial({
    summary:
      'Changes simulated evidence one byte at a time, cuts and extends it, and counts what the default policy accepts: nothing should be.',
    options: {
      share: count(100, 'percent of all mutations to try', { least: 0.001, most: 100, isWhole: false }),
      bits: count(1, 'bits to flip at each position', { most: 8 }),
      seed: seed('chooses the bits, and the part'),
      target: word('NAME', 'only targets whose name contains it'),
      workers: count(Math.min(availableParallelism(), 64), 'threads that share the mutations', { most: 64 }),
    },
    example: '--share 1 --target quote',
    run: async (deps, options) => (await import('./sweep/runSweep.ts')).runSweep(deps, options),
  }),

  webhooks: defineTrial({
    summary: `Has the service report sign-ins and proofs to a receiver that fails one time in five, while coordinator and workers are killed at random
moments: each is delivered at least once, nothing is reported that did not happen, forged and replayed ones are refused, and nothing goes
where a redirect points.`,
    options: {
      count: count(10_000, 'webhooks to be delivered'),
      seed: seed('of the random moments and failures'),
    },
    example: '--count 500',
    run: async (deps, options) => (await import('./webhooks/runWebhooks.ts')).runWebhooks(deps, options),
  }),

  'witness:kills': defineTrial({
    summary: `Kills a witness at random moments while two histories of one log are offered to it; it must never cosign both, nor forget what it cosigned.`,
    options: {
      kills: count(1_000, 'how often'),
      seed: seed('of the random moments'),
    },
    example: '--kills 50',
    run: async (deps, options) => (await import('./witness/runKills.ts')).runKills(deps, options),
  }),
}
