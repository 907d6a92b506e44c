export { ServiceError } from '@countersign/protocol'
export { type AgentKey, createAgentKey } from './agentKey.ts'
export { type AgentProof, type CreateAgentParameters, createAgent } from './createAgent.ts'
