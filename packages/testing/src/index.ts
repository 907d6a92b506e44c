export { createTestBrowser, type TestBrowser } from './browser.ts'
export {
  type ChainAccount,
  catchUp,
  type LocalChain,
  type NodeRequest,
  type StartChainOptions,
  startChain,
} from './chain.ts'
export {
  type FakeChain,
  type FakeChainCheckpoint,
  type FakeChainEvent,
  type FakeChainFault,
  type StartFakeChainParameters,
  startFakeChain,
} from './fakeChain/startFakeChain.ts'
export { findProgram } from './findProgram.ts'
export { type FakePinata, type FakePinService, type PinServiceFault, startFakeKubo, startFakePinata } from './ipfs.ts'
export { type FakeKds, type FakeKdsFault, startFakeKds } from './kds.ts'
export type { OidcAccount } from './localAccounts.ts'
export {
  type OidcProviderParameters,
  type RunningOidcProvider,
  startOidcProvider,
} from './oidc.ts'
export { type FakePcs, type FakePcsDocument, type FakePcsFault, startFakePcs } from './pcs.ts'
export { findFreePorts } from './ports.ts'
export { removePostgres, type StartPostgresOptions, startPostgres, type TestPostgres } from './postgres.ts'
export { connectPostgres, type PostgresClient, queryPostgres } from './postgresClient.ts'
export {
  type Account,
  findAccount,
  killServer,
  type StartServerParameters,
  startServer,
  stopServer,
} from './postgresServer.ts'
export { findChildren, isRunning, killIfThere } from './processes.ts'
export { createRandom } from './random.ts'
export { readResidentMib } from './resident.ts'
export { type Satellite, type SatelliteFault, startSatellite } from './satellite.ts'
export { measureSimulatedCoordinator, measureSimulatedEnclave, readAnchors } from './stack/anchors.ts'
export { type Backend, type BackendLog, type StartBackendParameters, startBackend } from './stack/startBackend.ts'
export { createTestDatabase, type TestDatabase } from './testDatabase.ts'
