export { parseCertTable, type SnpCertificates } from './certTable.ts'
export { type ConfigfsReportSourceParameters, createConfigfsReportSource } from './configfs.ts'
export * from './core.ts'
export { createKdsClient, type KdsClient, type KdsClientDeps, readPemBundle } from './kds.ts'
export {
  createSimulatedReportSource,
  type ReportSimulator,
  type SimulatedReportSourceParameters,
} from './simulatedReports.ts'
