/** Metric series in promtool's notation, one value per minute. */
export type World = Readonly<Record<string, string>>

const C1 = 'job="coordinators", instance="c1"'
const C2 = 'job="coordinators", instance="c2"'
const W1 = 'job="workers", instance="w1"'
const X1 = 'job="witnesses", instance="x1"'
const RECEIVER = 'receiver="https://hooks.example"'
const ORIGIN = 'origin="log.example/1"'

const ALWAYS = 'x120'
const steady = (value: number) => `${value}${ALWAYS}`
/** A counter that grows every minute. */
const growing = (step: number) => `0+${step}${ALWAYS}`
/** A counter that starts to grow after 90 minutes. */
const lately = (step: number) => `0x90 0+${step}x30`

/** Has every metric that the rules use. No alert may fire. */
export const healthy: World = {
  [`up{${C1}}`]: steady(1),
  [`up{${C2}}`]: steady(1),
  [`up{${W1}}`]: steady(1),
  [`up{${X1}}`]: steady(1),
  [`process_start_time_seconds{${C1}}`]: steady(1),
  [`process_start_time_seconds{${W1}}`]: steady(1),
  [`countersign_info{${C1}, program="coordinator", version="1.0.0", mode="hardware"}`]: steady(1),
  [`countersign_clock_seconds{${C1}}`]: growing(60),
  [`nodejs_eventloop_lag_p99_seconds{${C1}}`]: steady(0.02),
  [`process_resident_memory_bytes{${C1}}`]: steady(300e6),
  [`process_open_fds{${C1}}`]: steady(40),
  [`process_max_fds{${C1}}`]: steady(1024),
  [`countersign_disk_free_bytes{${X1}}`]: steady(50e9),
  [`countersign_disk_size_bytes{${X1}}`]: steady(100e9),
  [`countersign_enclave_up{${C1}, enclave="https://e1"}`]: steady(1),
  [`countersign_enclave_up{${C1}, enclave="https://e2"}`]: steady(1),
  [`countersign_sign_seconds_count{${C1}, code="ok"}`]: growing(60),
  // A client error doesn't count as a failure of the service.
  [`countersign_sign_seconds_count{${C1}, code="session_expired"}`]: growing(60),
  [`countersign_sign_seconds_count{${C1}, code="enclave_unavailable"}`]: steady(0),
  [`countersign_sign_seconds_count{${C1}, code="entropy_unavailable"}`]: steady(0),
  [`countersign_sign_seconds_count{${C1}, code="attestation_invalid"}`]: steady(0),
  [`countersign_sign_seconds_bucket{${C1}, code="ok", le="0.1"}`]: growing(60),
  [`countersign_sign_seconds_bucket{${C1}, code="ok", le="2"}`]: growing(60),
  [`countersign_sign_seconds_bucket{${C1}, code="ok", le="5"}`]: growing(60),
  [`countersign_sign_seconds_bucket{${C1}, code="ok", le="+Inf"}`]: growing(60),
  [`countersign_attestation_lapses_at_seconds{${C1}}`]: `3600+60${ALWAYS}`,
  [`countersign_collateral_lapses_at_seconds{${C1}, platform="00a06d080000 platform"}`]: steady(30 * 86_400),
  [`countersign_entropy_failures_total{${C1}}`]: steady(0),
  [`countersign_entropy_samples_total{${C1}, outcome="handed_out"}`]: growing(60),
  [`countersign_entropy_samples_total{${C1}, outcome="unused"}`]: growing(6),
  [`countersign_entropy_samples_total{${C1}, outcome="wrong_signature"}`]: steady(0),
  [`countersign_problems_total{${C1}, code="provider_unavailable"}`]: steady(0),
  [`countersign_problems_total{${C1}, code="key_binding_mismatch"}`]: steady(0),
  [`countersign_problems_total{${C1}, code="internal"}`]: steady(0),
  [`countersign_problems_total{${C1}, code="rate_limited"}`]: growing(60),
  [`countersign_part_up{${C1}, part="database"}`]: steady(1),
  [`countersign_part_up{${C1}, part="attestation"}`]: steady(1),
  [`countersign_part_up{${C1}, part="log"}`]: steady(1),
  [`countersign_database_connections{${C1}, state="waiting"}`]: '0 3 0x118',
  [`countersign_oldest_open_proof_seconds{${W1}, status="pending_pin"}`]: steady(3),
  [`countersign_oldest_open_proof_seconds{${W1}, status="pending_onchain"}`]: steady(60),
  [`countersign_open_proofs{${W1}, status="pending_pin"}`]: steady(20),
  [`countersign_open_proofs{${W1}, status="pending_onchain"}`]: steady(200),
  [`countersign_stage_attempts_total{${W1}, stage="pin", outcome="pinned"}`]: growing(60),
  // Occasional retries of pins and of the chain are normal.
  [`countersign_stage_attempts_total{${W1}, stage="pin", outcome="retried"}`]: growing(1),
  [`countersign_stage_attempts_total{${W1}, stage="pin", outcome="failed"}`]: steady(0),
  [`countersign_stage_attempts_total{${W1}, stage="publish", outcome="ok"}`]: growing(6),
  [`countersign_stage_attempts_total{${W1}, stage="publish", outcome="chain_unavailable"}`]: growing(1),
  [`countersign_stage_attempts_total{${W1}, stage="publish", outcome="failed"}`]: steady(0),
  // Old failures, with one failed scrape in between.
  [`countersign_stage_attempts_total{${W1}, stage="confirm", outcome="failed"}`]: '3x84 stale 3x34',
  [`countersign_stage_attempts_total{${W1}, stage="retention", outcome="dropped"}`]: growing(60),
  [`countersign_stage_attempts_total{${W1}, stage="retention", outcome="kept"}`]: steady(0),
  [`countersign_publisher_affordable_gas{${W1}, account="0x01"}`]: steady(1e9),
  [`countersign_oldest_open_webhook_seconds{${W1}, ${RECEIVER}}`]: steady(900),
  [`countersign_open_webhooks{${W1}, ${RECEIVER}, status="pending"}`]: steady(200),
  [`countersign_open_webhooks{${W1}, ${RECEIVER}, status="dead"}`]: steady(0),
  [`countersign_log_witnesses{${C1}, ${ORIGIN}, state="named"}`]: steady(3),
  [`countersign_log_witnesses{${C1}, ${ORIGIN}, state="missing"}`]: steady(0),
  [`countersign_log_witnesses{${C1}, ${ORIGIN}, state="quorum"}`]: steady(2),
  [`countersign_log_size{${C1}, ${ORIGIN}, state="written"}`]: `8+60${ALWAYS}`,
  [`countersign_log_size{${C1}, ${ORIGIN}, state="cosigned"}`]: growing(60),
  // An abandoned log: witnesses no longer cosign its entries.
  [`countersign_log_size{${C1}, origin="log.example/0", state="written"}`]: steady(9),
  [`countersign_log_size{${C1}, origin="log.example/0", state="cosigned"}`]: steady(8),
  [`countersign_log_witness_answers_total{${C1}, witness="w1", outcome="cosigned"}`]: growing(60),
  [`countersign_log_witness_answers_total{${C1}, witness="w1", outcome="lies"}`]: steady(0),
  [`countersign_log_witness_answers_total{${C1}, witness="w1", outcome="contradicts"}`]: steady(0),
  [`countersign_witness_answers_total{${X1}, status="200"}`]: growing(60),
  [`countersign_witness_answers_total{${X1}, status="409"}`]: growing(1),
  [`countersign_witness_answers_total{${X1}, status="422"}`]: steady(0),
  [`countersign_witness_forks_total{${X1}}`]: steady(0),
  [`countersign_witness_answers_total{${X1}, status="500"}`]: steady(0),
}

const attempts = (stage: string, outcome: string) =>
  `countersign_stage_attempts_total{${W1}, stage="${stage}", outcome="${outcome}"}`
const signings = (code: string) => `countersign_sign_seconds_count{${C1}, code="${code}"}`
const witnesses = (state: string) => `countersign_log_witnesses{${C1}, ${ORIGIN}, state="${state}"}`

/** For each alert, the series that differ from the healthy world and fire it. */
export const wrong: Readonly<Record<string, World>> = {
  CountersignNoCoordinator: { [`up{${C1}}`]: steady(0), [`up{${C2}}`]: steady(0) },
  CountersignCoordinatorDown: { [`up{${C2}}`]: '1x90 0x30' },
  CountersignNoWorker: { [`up{${W1}}`]: steady(0) },
  CountersignWorkerDown: { [`up{${W1}}`]: '1x90 0x30' },
  CountersignWitnessDown: { [`up{${X1}}`]: '1x90 0x30' },
  CountersignRestarts: { [`process_start_time_seconds{${C1}}`]: '1x89 100x4 200x4 300x30' },
  CountersignMockSilicon: {
    [`countersign_info{${C2}, program="coordinator", version="1.0.0", mode="mock"}`]: steady(1),
  },
  CountersignClockOff: { [`countersign_clock_seconds{${C1}}`]: `7+60${ALWAYS}` },
  CountersignEventLoopSlow: { [`nodejs_eventloop_lag_p99_seconds{${C1}}`]: steady(0.8) },
  CountersignMemoryHigh: { [`process_resident_memory_bytes{${C1}}`]: steady(1e9) },
  CountersignOpenFiles: { [`process_open_fds{${C1}}`]: steady(900) },
  CountersignDiskFills: { [`countersign_disk_free_bytes{${X1}}`]: steady(9e9) },
  CountersignNoEnclave: {
    [`countersign_enclave_up{${C1}, enclave="https://e1"}`]: steady(0),
    [`countersign_enclave_up{${C1}, enclave="https://e2"}`]: steady(0),
  },
  CountersignEnclaveDown: { [`countersign_enclave_up{${C1}, enclave="https://e2"}`]: '1x90 0x30' },
  CountersignNothingSigned: { [signings('ok')]: steady(7), [signings('enclave_unavailable')]: growing(1) },
  CountersignSigningFails: { [signings('enclave_unavailable')]: growing(10) },
  CountersignSigningSlow: {
    [`countersign_sign_seconds_bucket{${C1}, code="ok", le="0.1"}`]: growing(30),
    [`countersign_sign_seconds_bucket{${C1}, code="ok", le="2"}`]: growing(50),
  },
  CountersignEvidenceRefused: { [signings('attestation_invalid')]: '0x95 1x25' },
  CountersignAttestationLapses: { [`countersign_attestation_lapses_at_seconds{${C1}}`]: steady(6_600) },
  CountersignAttestationMissing: { [`countersign_part_up{${C1}, part="attestation"}`]: '1x90 0x30' },
  CountersignCollateralLapses: {
    [`countersign_collateral_lapses_at_seconds{${C1}, platform="00a06d080000 platform"}`]: steady(2 * 86_400),
  },
  CountersignCollateralLapsed: {
    [`countersign_collateral_lapses_at_seconds{${C1}, platform="00a06d080000 platform"}`]: steady(5_400),
  },
  CountersignEntropyUnavailable: { [signings('entropy_unavailable')]: growing(2) },
  CountersignEntropySourceFails: { [`countersign_entropy_failures_total{${C1}}`]: lately(1) },
  CountersignEntropyRefused: { [`countersign_entropy_samples_total{${C1}, outcome="wrong_signature"}`]: '0x95 1x25' },
  CountersignSignInFails: { [`countersign_problems_total{${C1}, code="provider_unavailable"}`]: growing(2) },
  CountersignUnexpectedErrors: { [`countersign_problems_total{${C1}, code="internal"}`]: '0x95 1x25' },
  CountersignDatabaseDown: { [`countersign_part_up{${C1}, part="database"}`]: '1x90 0x30' },
  CountersignDatabaseBusy: { [`countersign_database_connections{${C1}, state="waiting"}`]: steady(2) },
  CountersignPinsWait: { [`countersign_oldest_open_proof_seconds{${W1}, status="pending_pin"}`]: growing(60) },
  CountersignPublicationsWait: {
    [`countersign_oldest_open_proof_seconds{${W1}, status="pending_onchain"}`]: growing(60),
  },
  CountersignBacklogGrows: { [`countersign_open_proofs{${W1}, status="pending_onchain"}`]: growing(100) },
  CountersignProofsFailed: { [attempts('publish', 'failed')]: '0x95 1x25' },
  CountersignPinnerFails: { [attempts('pin', 'pinned')]: steady(5) },
  CountersignChainFails: { [attempts('publish', 'ok')]: steady(5) },
  CountersignPublisherRefused: { [attempts('publish', 'publisher_not_allowed')]: growing(1) },
  CountersignAnchorConflict: { [attempts('publish', 'anchor_conflict')]: growing(1) },
  CountersignPublisherShort: { [`countersign_publisher_affordable_gas{${W1}, account="0x01"}`]: steady(1e7) },
  CountersignPublisherOutOfFunds: { [attempts('publish', 'insufficient_funds')]: growing(1) },
  CountersignGasBudgetSpent: { [attempts('publish', 'gas_budget_spent')]: growing(1) },
  CountersignReceiptsKept: { [attempts('retention', 'kept')]: '0x95 1x25' },
  CountersignWebhooksWait: { [`countersign_oldest_open_webhook_seconds{${W1}, ${RECEIVER}}`]: growing(60) },
  CountersignWebhooksDead: { [`countersign_open_webhooks{${W1}, ${RECEIVER}, status="dead"}`]: '0x95 1x25' },
  CountersignLogClosed: { [`countersign_part_up{${C1}, part="log"}`]: '1x90 0x30' },
  CountersignLogQuorumAtRisk: { [witnesses('missing')]: steady(1) },
  CountersignWitnessMissing: { [witnesses('missing')]: steady(1), [witnesses('named')]: steady(5) },
  CountersignLogStuck: { [`countersign_log_size{${C1}, ${ORIGIN}, state="cosigned"}`]: steady(9) },
  // The coordinator abandons the log after the second contradiction.
  CountersignWitnessDisagrees: {
    [`countersign_log_witness_answers_total{${C1}, witness="w1", outcome="contradicts"}`]: '0x95 2x25',
  },
  CountersignWitnessForked: { [`countersign_witness_forks_total{${X1}}`]: '0x95 1x25' },
  CountersignWitnessRefuses: { [`countersign_witness_answers_total{${X1}, status="422"}`]: '0x95 1x25' },
  CountersignWitnessFails: { [`countersign_witness_answers_total{${X1}, status="500"}`]: '0x95 1x25' },
}

/** The same, for processes that fail between their start and the first scrape. */
export const wrongAtOnce: Readonly<Record<string, World>> = {
  CountersignProofsFailed: {
    'process_start_time_seconds{job="workers", instance="w2"}': '_x95 5700x25',
    'countersign_stage_attempts_total{job="workers", instance="w2", stage="publish", outcome="failed"}': '_x95 3x25',
  },
  CountersignWitnessDisagrees: {
    [`process_start_time_seconds{${C2}}`]: '1x94 5700x25',
    [`countersign_log_witness_answers_total{${C2}, witness="w1", outcome="contradicts"}`]: '_x95 2x25',
  },
}
