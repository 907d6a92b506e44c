import { createVerifier } from '@countersign/attestation'
import { simulatedRoots } from '@countersign/attestation/simulator'
import type { WitnessPolicy } from '@countersign/log'
import { checkReceipt, encodeCar, parseReceiptCar } from '@countersign/receipt'
import { assembleReceipt } from '../../services/coordinator/src/pipeline/assembleReceipt.ts'
import { openStores } from '../../services/coordinator/src/store/openStore.ts'

/** Assembles receipts from what signing has stored, as the pipeline does, and has the verifier's code judge them. The faults. */
export async function judgeReceipts(parameters: {
  databaseUrl: string
  slugs: readonly string[]
  /** A reader's own, beside that of the enclave's settings. */
  policy: WitnessPolicy
  entropyKey: string
}): Promise<string[]> {
  const { databaseUrl, slugs, policy, entropyKey } = parameters
  const { store, pipeline } = await openStores({ databaseUrl })
  const roots = simulatedRoots()
  const verifier = createVerifier({ roots })
  const faults: string[] = []
  try {
    for (const slug of slugs) {
      const work = await pipeline.pinning.findPin(slug)
      if (work === undefined) throw new Error(`${slug} is not there`)
      const { receipt, collateral, others } = assembleReceipt(work)
      const car = encodeCar([receipt, collateral, ...others].map((block) => block.bytes))
      const { bytes, collateral: carried, blocks } = parseReceiptCar(car)
      const { steps, verdict, logged } = await checkReceipt(bytes, carried as Uint8Array, {
        roots,
        verifier,
        mockEntropyKeys: [entropyKey],
        cid: receipt.cid,
        blocks,
        anchors: { logWitnesses: [policy] },
      })
      const failed = steps.filter(({ id, status }) => status === 'fail' || (id === 'log' && status !== 'pass'))
      if (failed.length > 0 || verdict !== 'mock' || logged === undefined) {
        faults.push(`${slug} is ${verdict}: ${failed.map(({ id, detail }) => `${id}: ${detail}`).join('; ')}`)
      }
    }
  } finally {
    await store.close()
  }
  return faults
}
