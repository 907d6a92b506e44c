import { parseVkey, type WitnessPolicy } from '@countersign/log'
import { toHex } from '@countersign/protocol'
import type { StackAnchors } from '@countersign/testing/stack'
import { emptyManifest, type Manifest, parseMinimumTcbTexts } from '@countersign/verify'
import type { WebConfig } from '../apps/web/src/config.ts'
import type { DevChain } from './chain.ts'
import { TEST_TOKEN } from './testToken.ts'

type Chain = Pick<DevChain, 'url' | 'chainId' | 'contract'> & {
  logWitness?: Omit<NonNullable<DevChain['logWitness']>, 'owner'> | undefined
}

/** The manifest for verifiers of this stack's proofs: it trusts only this stack. With a log, `witnesses` are its witnesses. */
export function createDevManifest(
  { chainId, contract, logWitness }: Chain,
  anchors: StackAnchors,
  witnesses: readonly { vkey: string; url: string }[] | undefined,
): Manifest {
  const minimumTcb = parseMinimumTcbTexts([anchors.coordinatorTcb])
  return {
    ...emptyManifest,
    enclave: { measurements: [anchors.measurement], configHashes: [anchors.configHash] },
    coordinator: {
      measurements: [anchors.coordinatorMeasurement],
      configHashes: [anchors.coordinatorConfigHash],
      ...(minimumTcb === undefined ? {} : { minimumTcb }),
    },
    entropyKeys: [anchors.entropyKey],
    ...(witnesses === undefined
      ? {}
      : { log: toPolicy(witnesses.map(({ vkey }) => vkey)), witnessUrls: witnesses.map(({ url }) => url) }),
    contracts: [{ chainId, address: contract.toLowerCase() }],
    ...(logWitness === undefined
      ? {}
      : {
          logContracts: [
            {
              chainId,
              address: logWitness.address.toLowerCase(),
              fromBlock: logWitness.fromBlock,
              logs: logWitness.logs.map(({ id }) => ({ id })),
            },
          ],
        }),
  }
}

/** The enclave's default: the smallest majority. */
function toPolicy(vkeys: readonly string[]): WitnessPolicy {
  const witnesses = vkeys.map((vkey) => toHex(parseVkey(vkey).publicKey))
  return { witnesses, quorum: Math.floor(witnesses.length / 2) + 1 }
}

export type CreateWebConfigParameters = {
  /** Of the coordinator. */
  publicUrl: string
  demoUrl: string
  chain: Chain
  manifest: Manifest
  /** The file of the same manifest on this machine. */
  manifestFile: string
}

/** As in the file, where wei are a string of digits. */
type WebConfigFile = Omit<WebConfig, 'maxFeePerGas'> & { maxFeePerGas: string; trust: Manifest }

/** Gas costs about 1 gwei here. With the SDK's default limit the app would show up to 0.25 ETH per payment. */
const MAX_FEE_PER_GAS = 100_000_000_000n

/** The configuration of the local web app. It trusts only this stack, and calls it MOCK. */
export function createWebConfig(parameters: CreateWebConfigParameters): WebConfigFile {
  const { publicUrl, demoUrl, chain, manifest, manifestFile } = parameters
  const { url: rpcUrl, chainId, contract: address } = chain
  return {
    apiBaseUrl: publicUrl,
    chainId,
    rpcUrl,
    maxFeePerGas: String(MAX_FEE_PER_GAS),
    chainName: 'Local chain',
    faucetUrl: `${rpcUrl}/faucet`,
    // The coordinator is also the gateway.
    ipfsGatewayUrl: publicUrl,
    tokens: [{ chainId, ...TEST_TOKEN }],
    attestations: { chainId, rpcUrl, address },
    allowMock: true,
    trust: manifest,
    manifestFile,
    signInDemoUrl: demoUrl,
  }
}
