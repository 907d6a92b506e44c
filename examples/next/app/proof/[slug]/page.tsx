import { ServiceClient, ServiceError } from '@countersign/sdk/client'
import { notFound } from 'next/navigation'
import { config } from '../../config'

// Proofs are public: the server asks for one without a session.
const client = new ServiceClient(config)

export default async function ProofPage({ params }: { params: Promise<{ slug: string }> }) {
  const { slug } = await params
  const proof = await client.api.getProof(slug).catch((error: unknown) => {
    if (error instanceof ServiceError && error.status === 404) notFound()
    throw error
  })
  return (
    <main>
      <h1>Proof</h1>
      <p>
        {proof.walletAddress} signed {proof.txHash}
      </p>
      <p role="status">{proof.status}</p>
    </main>
  )
}
