import { createVerifier } from '@countersign/attestation'
import { createReceiptSimulator } from '@countersign/receipt/simulator'
import { createJudge } from './createJudge.ts'
import type { Target } from './sweep.ts'

/** A receipt of version 1, and its collateral. */
export async function createReceiptTargets(signedAt: Date): Promise<Target[]> {
  const service = createReceiptSimulator()
  const { bytes, collateral, anchors } = await service.issue({ signedAt, treeSize: 3, leafIndex: 1 })
  const { roots, mockEntropyKeys } = service
  const verifier = createVerifier({ roots })

  const judge = createJudge()
  const options = { roots, anchors, mockEntropyKeys, verifier }

  return [
    { name: 'receipt', genuine: bytes, accept: (candidate) => judge(candidate, collateral, options) },
    {
      name: 'receipt collateral',
      genuine: collateral,
      accept: (candidate) => judge(bytes, candidate, options),
    },
  ]
}
