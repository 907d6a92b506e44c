import { join } from 'node:path'
import type { Abi, Hex } from 'viem'
import { withHardhat } from './withHardhat.ts'

export type CompiledContract = {
  abi: Abi
  /** The deployment code, without the constructor's arguments. */
  bytecode: Hex
  /** The exact code on the chain, because the contracts have no immutable values. */
  deployedBytecode: Hex
}

const toSource = (name: string) => join(import.meta.dirname, 'src', `${name}.sol`)

/** Compiles both contracts from their sources. Deployment uses the committed result, `abi.ts`. */
export function compile(): Promise<{ serviceAttestations: CompiledContract; logWitness: CompiledContract }> {
  return withHardhat(async (hardhat) => {
    const names = ['ServiceAttestations', 'LogWitness']
    const result = await hardhat.solidity.build(names.map(toSource), { quiet: true })
    const readContract = async (name: string): Promise<CompiledContract> => {
      const file = hardhat.solidity.isSuccessfulBuildResult(result) ? result.get(toSource(name)) : undefined
      if (file?.type !== 'BUILD_SUCCESS') throw new Error(`${name}.sol does not compile`)
      if (file.warnings.length > 0) throw new Error(file.warnings.map(({ message }) => message).join('\n'))
      const artifact = await hardhat.artifacts.readArtifact(name)
      return {
        abi: artifact.abi as Abi,
        bytecode: artifact.bytecode as Hex,
        deployedBytecode: artifact.deployedBytecode as Hex,
      }
    }
    return {
      serviceAttestations: await readContract('ServiceAttestations'),
      logWitness: await readContract('LogWitness'),
    }
  })
}
