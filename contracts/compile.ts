import { join } from 'node:path'
import type { Abi, Hex } from 'viem'
import { withHardhat } from './withHardhat.ts'

export type CompiledContract = {
  abi: Abi
  /** The deployment code, without the constructor's arguments. */
  bytecode: Hex
  /** The exact code on the chain, because the contract has no immutable values. */
  deployedBytecode: Hex
}

/** Compiles ServiceAttestations from its source. Deployment uses the committed result, `abi.ts`. */
export function compile(): Promise<CompiledContract> {
  return withHardhat(async (hardhat) => {
    const source = join(import.meta.dirname, 'src', 'ServiceAttestations.sol')
    const result = await hardhat.solidity.build([source], { quiet: true })
    const file = hardhat.solidity.isSuccessfulBuildResult(result) ? result.get(source) : undefined
    if (file?.type !== 'BUILD_SUCCESS') throw new Error('ServiceAttestations.sol does not compile')
    if (file.warnings.length > 0) throw new Error(file.warnings.map(({ message }) => message).join('\n'))
    const artifact = await hardhat.artifacts.readArtifact('ServiceAttestations')
    return {
      abi: artifact.abi as Abi,
      bytecode: artifact.bytecode as Hex,
      deployedBytecode: artifact.deployedBytecode as Hex,
    }
  })
}
