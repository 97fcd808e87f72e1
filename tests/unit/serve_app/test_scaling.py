from serve_app.config import Scaling
from serve_app.deployments.scaling import serve_options, skill_scaling
from skills.registry import SkillRegistry


def test_a_replica_books_the_gpus_that_its_manifest_asks_for():
    manifest = SkillRegistry.load()["cross_encoder"]
    asked = manifest.resources.model_copy(update={"num_gpus": 0.5, "num_cpus": 2})
    manifest = manifest.model_copy(update={"resources": asked})
    booked = serve_options(skill_scaling(manifest))["ray_actor_options"]
    assert {"num_cpus": 2, "num_gpus": 0.5} == booked
    assert 0 == serve_options(Scaling())["ray_actor_options"]["num_gpus"]
